/**
 * The dashboard's cookies. All are `__Host-`: the browser then sees to it that they were set by this host,
 * over https, for all of it and nobody else. Chromium takes localhost and 127.0.0.0/8 for secure over plain
 * http, too (tried with version 156); any other address needs https.
 */

/** The session's secret. */
export const SESSION_COOKIE = '__Host-sid'
/** The secret of a device that has signed in before. */
export const DEVICE_COOKIE = '__Host-device'
/** Ties a sign-in elsewhere to the browser that began it. */
export const OIDC_COOKIE = '__Host-oidc'

/** Of a cookie of ours: base64url without padding. */
const VALUE = /^[A-Za-z0-9_-]{1,200}$/

/** The value of a cookie in the header; null where it is not there, twice there, or none of ours. */
export function cookieOf(header: string | undefined, name: string): string | null {
  let found: string | null = null
  for (const part of (header ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at === -1 || part.slice(0, at).trim() !== name) continue
    // Two of one name: one of them was put there by somebody else.
    if (found !== null) return null
    found = part.slice(at + 1).trim()
  }
  return found !== null && VALUE.test(found) ? found : null
}

/** A `set-cookie` header's value. Not readable by scripts, not sent by requests from elsewhere. */
export function cookieText(name: string, value: string, maxAgeSeconds: number): string {
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; Secure; HttpOnly; SameSite=Strict`
}

/** The value that takes a cookie away. */
export function noCookieText(name: string): string {
  return cookieText(name, '', 0)
}
