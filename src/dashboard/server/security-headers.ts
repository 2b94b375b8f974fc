/**
 * Security headers of the dashboard. They are set once per request before the reply, so that every reply has
 * them.
 */

/** No content sniffing, no framing, no referrer to other sites. */
const EVERY_REPLY = [
  ...['x-content-type-options', 'nosniff'],
  ...['x-frame-options', 'DENY'],
  ...['referrer-policy', 'same-origin'],
  ...['cross-origin-opener-policy', 'same-origin'],
  ...['cross-origin-resource-policy', 'same-origin'],
  ...['permissions-policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()'],
]

/**
 * Scripts, styles, pictures and requests of this origin only; no inline code, no frames.
 * Bundlers turn small pictures into `data:` URLs.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const PAGE = ['content-security-policy', PAGE_POLICY, ...EVERY_REPLY]
const API = [
  ...['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
  ...EVERY_REPLY,
]

/** Header names and values in turn, for a reply to a path at or below `/dashboard`, without its query. */
export function securityHeadersOf(path: string): readonly string[] {
  return path === '/dashboard/api' || path.startsWith('/dashboard/api/') ? API : PAGE
}
