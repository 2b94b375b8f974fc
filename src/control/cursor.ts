/** The cursors of pages in both control APIs: opaque to clients. Pure. */

/** The place that a page ended with, as a cursor. */
export function cursorOf(place: string): string {
  return Buffer.from(`c1:${place}`).toString('base64url')
}

/** The place in a cursor; null for another text. */
export function placeIn(cursor: string): string | null {
  const text = Buffer.from(cursor, 'base64url').toString()
  if (!text.startsWith('c1:') || cursorOf(text.slice(3)) !== cursor) return null
  return text.slice(3)
}
