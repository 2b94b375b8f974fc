/** The token of the person who signed in to a gateway, renewed if it expires soon. */
import { LoginError, renewTokens } from './login-client.js'
import { readLogins, withLock, writeLogin, type LoginEntry } from './login-file.js'

/** A token that is valid for some minutes. Rejects with `LoginError`. */
export async function validToken(url: string): Promise<string> {
  const known = entryFor(url)
  if (Date.now() < known.renewAtMs) return known.accessToken
  return withLock(async () => {
    // Another process may have renewed it meanwhile.
    const entry = entryFor(url)
    if (Date.now() < entry.renewAtMs) return entry.accessToken
    try {
      const renewed = await renewTokens(url, entry)
      writeLogin(url, renewed)
      return renewed.accessToken
    } catch (error) {
      if (!(error instanceof LoginError)) throw error
      if (error.code === null && Date.now() < entry.expiresAtMs) return entry.accessToken
      if (error.code !== 'invalid_grant') throw error
      writeLogin(url, null)
      throw new LoginError(`the sign-in at ${url} has ended: run sluice login ${url}`)
    }
  })
}

function entryFor(url: string): LoginEntry {
  const entry = readLogins().get(url)
  if (entry !== undefined) return entry
  throw new LoginError(`you are not signed in to ${url}: run sluice login ${url}`)
}
