"""Pages of the palace; `urls` alone imports them."""
