/**
 * The headers that tell browsers what a reply of the dashboard may do. They are set once for each request,
 * before anything answers it, so that no reply goes without them.
 */

/** What a browser may do with any reply: neither guess its type, nor frame it, nor tell others of its address. */
const EVERY_REPLY = [
  ...['x-content-type-options', 'nosniff'],
  ...['x-frame-options', 'DENY'],
  ...['referrer-policy', 'same-origin'],
  ...['cross-origin-opener-policy', 'same-origin'],
  ...['cross-origin-resource-policy', 'same-origin'],
  ...['permissions-policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()'],
]

/**
 * Scripts, styles, pictures and requests of this origin and no other; nothing inline, nothing framed.
 * `data:` pictures are what bundlers make of small ones.
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

/** Names and values in turn, for a reply to a path at or below `/dashboard`, without its query. */
export function securityHeadersOf(path: string): readonly string[] {
  return path === '/dashboard/api' || path.startsWith('/dashboard/api/') ? API : PAGE
}
