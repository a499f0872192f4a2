// Chat with memory through the AI SDK.
//
//     node chat.mjs "I just moved to Lisbon."
//     node chat.mjs "Where do I live?"    # half a minute later, when that is filed
//
// Needs: npm install here; a running Loci and LOCI_API_KEY.
import { createOpenAI } from "@ai-sdk/openai";
import { streamText } from "ai";

const loci = createOpenAI({
  baseURL: `${process.env.LOCI_URL ?? "http://localhost:8000"}/v1`,
  apiKey: process.env.LOCI_API_KEY,
});

const { textStream } = streamText({ model: loci("loci"), prompt: process.argv[2] });
for await (const piece of textStream) process.stdout.write(piece);
process.stdout.write("\n");
