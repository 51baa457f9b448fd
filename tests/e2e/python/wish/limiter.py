from claude_agent_test.sandbox import RateLimiter

limiter = RateLimiter(
    max_requests=100,
    window_seconds=60,
)

is_allowed, reason = limiter.check("user_123")
if not is_allowed:
    print(f"limited: {reason}")
print(is_allowed)
