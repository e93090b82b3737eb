"""ouzel."""
