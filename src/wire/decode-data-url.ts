/**
 * Decodes the URLs of media in requests: `data:` URLs with base64, and web addresses. Linear in the size of
 * the data.
 */
import type { MediaSource } from '../chat/request.js'
import { refuse } from './json/check-fields.js'
import { standardBase64 } from './standard-base64.js'

/** Maximum length of a web address, about the limit of browsers and servers. */
const MAX_URL = 8_192

/** The source that a `data:` or http(s) URL names. Throws `malformed_request` naming `path`. */
export function decodeMediaUrl(url: string, path: string): MediaSource {
  const scheme = url.slice(0, 8).toLowerCase()
  if (scheme.startsWith('data:')) return dataUrl(url, path)
  if (!scheme.startsWith('http://') && scheme !== 'https://') {
    refuse(path, 'must be an http(s) URL or a data: URL')
  }
  if (url.length > MAX_URL) refuse(path, `must be at most ${MAX_URL} characters`)
  return { kind: 'url', url }
}

function dataUrl(url: string, path: string): MediaSource {
  const comma = url.indexOf(',')
  // A media type is short; a longer search could read megabytes of image.
  const head = comma < 0 || comma > 256 ? '' : url.slice(5, comma)
  const match = /^([\w.+-]+\/[\w.+-]+)(?:;[\w.+-]+=[^;,]*)*;base64$/i.exec(head)
  const mediaType = match?.[1]
  if (mediaType === undefined) refuse(path, 'must be a data: URL with a media type and base64')
  if (comma + 1 === url.length) refuse(path, 'must hold data')
  return {
    kind: 'base64',
    mediaType: mediaType.toLowerCase(),
    data: standardBase64(url.slice(comma + 1)),
  }
}
