/** Counts the bytes of text in JSON without parsing it, for replies whose upstream reports no usage. */

const QUOTE = 0x22
const BACKSLASH = 0x5c
const LOWER_U = 0x75

/**
 * The bytes of the strings whose members match, from the offset `from` on; 0 if `from` is negative. `data` is
 * JSON as bytes read as Latin-1. `members` is a global expression that matches a member up to the first quote
 * of its value. A `\u` escape counts as 3 bytes, any other escape as 1.
 */
export function stringBytes(data: string, from: number, members: RegExp): number {
  if (from < 0) return 0
  let bytes = 0
  members.lastIndex = from
  while (members.test(data)) {
    let at = members.lastIndex
    for (;;) {
      const code = data.charCodeAt(at)
      if (code === QUOTE || Number.isNaN(code)) break
      if (code !== BACKSLASH) {
        bytes += 1
        at += 1
      } else if (data.charCodeAt(at + 1) === LOWER_U) {
        bytes += 3
        at += 6
      } else {
        bytes += 1
        at += 2
      }
    }
    members.lastIndex = at
  }
  return bytes
}
