"""The pages of imports: upload, preview, progress, receipt."""
