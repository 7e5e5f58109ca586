"""Common mistakes of users of Fluid, made on purpose, and the page of what is said about them."""
