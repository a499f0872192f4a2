"""Pages of the palace; `palace.urls` alone imports them."""
