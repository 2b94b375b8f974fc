/**
 * How many bytes of words a frame holds, for replies whose tokens nobody counts.
 * Found by search: nothing else of an ordinary delta is parsed. Knows no format.
 */
const QUOTE = 0x22
const BACKSLASH = 0x5c
const LOWER_U = 0x75

/**
 * The bytes of strings that follow `members`, in JSON text as Latin-1, whose length is that of its bytes; from a place
 * on, and 0 if that is negative. `members` is a global expression that finds a member's name up to the first quote of its
 * value. Escapes count as what they stand for, in bytes or nearly so.
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
