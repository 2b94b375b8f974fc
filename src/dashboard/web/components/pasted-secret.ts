/**
 * Credentials that are pasted into a search: a key of this gateway is hashed here and looked up by its digest
 * (`Is this leaked key ours?`), and nothing else is sent. No credential stays in the field.
 */
import { change } from '../api/endpoints.js'
import { problemOf } from '../api/client.js'
import { hasCredential, ownKeyIn } from '../format/secret-text.js'
import { go, keyLink } from '../routing.js'
import { report } from './notices.js'

/** The text of a search field; empty if it has a credential, which is looked up. `found`: it is a key. */
export function withoutSecret(text: string, found: () => void = () => undefined): string {
  if (!hasCredential(text)) return text
  const key = ownKeyIn(text)
  if (key === null) report('This looks like a secret other than a key of this gateway. It was not sent.')
  else void lookUp(key, found)
  return ''
}

async function lookUp(secret: string, found: () => void): Promise<void> {
  const mask = `${secret.slice(0, 8)}…${secret.slice(-4)}`
  try {
    const { key } = await change('POST /keys/lookup', { digest: await sha256(secret) })
    if (key === null) {
      report(`No key that you may see has the secret ${mask}. Only its SHA-256 was sent.`)
      return
    }
    found()
    go(keyLink(key))
    const state = key.state === 'live' ? '' : `, ${key.state}`
    report(`Yes, this is ${key.name} of ${key.accountName}${state}.`)
  } catch (error) {
    report(problemOf(error).message)
  }
}

/** In lower-case hex. */
async function sha256(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
