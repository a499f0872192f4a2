"""Find messages of an export that are filed already, on any branch."""

from __future__ import annotations

from palace.models import Drawer, DrawerQuerySet, ImportJob, Palace
from palace.transfer.importers.conversation import Conversation, branch_id
from palace.transfer.importers.formats import LOCI


def filed_by(job: ImportJob) -> DrawerQuerySet:
    """The drawers of earlier imports of this kind; for a Loci export, of any source."""
    drawers = Drawer.objects.filter(palace=job.palace_id)
    return drawers if job.format == LOCI.source else drawers.filter(source=job.format)


def count_present(palace: Palace, conversations: list[Conversation]) -> int:
    """The number of messages filed already, on any branch."""
    if not conversations:
        return 0
    owners = {
        (each.transcript.source, name): each.transcript.external_id
        for each in conversations
        for name in _family(each)
    }
    wanted = {
        (each.transcript.source, each.transcript.external_id, turn.external_id)
        for each in conversations
        for turn in each.turns
    }
    drawers = Drawer.objects.filter(
        palace=palace,
        source__in={source for source, _ in owners},
        conversation__in={name for _, name in owners},
    ).values_list("source", "conversation", "external_id")
    present = {
        (source, owners[source, name], external_id)
        for source, name, external_id in drawers.iterator()
        if (source, name) in owners
    }
    return len(wanted & present)


def on_other_branches(palace: Palace, conversation: Conversation) -> dict[tuple[str, str], str]:
    """The existing drawers of the conversation's messages, by (message id, text).

    An earlier export may have had another branch as the main one: a message is filed once.
    """
    if not conversation.branches:
        return {}
    palace.lock()
    drawers = Drawer.objects.filter(
        palace=palace,
        source=conversation.transcript.source,
        conversation__in=_family(conversation),
    )
    kept = drawers.values_list("external_id", "text", "conversation")
    return {(external_id, text): name for external_id, text, name in kept}


def _family(conversation: Conversation) -> set[str]:
    """The conversation ids under which these messages may be filed.

    Which branch is the main one changes from export to export, and a branch grows; but it is
    always named for one of its messages.
    """
    main = conversation.transcript.external_id
    names = {transcript.external_id for transcript in conversation.transcripts}
    if conversation.branches:
        names.update(branch_id(main, turn.external_id) for turn in conversation.turns)
    return names
