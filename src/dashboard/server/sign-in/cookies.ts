/**
 * The dashboard's cookies. The prefix `__Host-` makes browsers accept them only from this host, over https,
 * for all paths. Chromium also accepts them over plain http on localhost and 127.0.0.0/8 (tested with version
 * 156).
 */

/** The session's secret. */
export const SESSION_COOKIE = '__Host-sid'
/** The secret of a device that has signed in before. */
export const DEVICE_COOKIE = '__Host-device'
/** Ties a sign-in at an identity provider to the browser that started it. */
export const OIDC_COOKIE = '__Host-oidc'

/** A value of these cookies: base64url without padding. */
const VALUE = /^[A-Za-z0-9_-]{1,200}$/

/** The value of a cookie; null if it is absent, duplicated or malformed. */
export function cookieOf(header: string | undefined, name: string): string | null {
  let found: string | null = null
  for (const part of (header ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at === -1 || part.slice(0, at).trim() !== name) continue
    // Of two cookies with one name, another site may have set one.
    if (found !== null) return null
    found = part.slice(at + 1).trim()
  }
  return found !== null && VALUE.test(found) ? found : null
}

/** A `set-cookie` value. Scripts cannot read the cookie, and cross-site requests do not send it. */
export function cookieText(name: string, value: string, maxAgeSeconds: number): string {
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; Secure; HttpOnly; SameSite=Strict`
}

/** The value that removes a cookie. */
export function noCookieText(name: string): string {
  return cookieText(name, '', 0)
}
