/** Corrupts the bytes of a stream with seeded randomness, independent of the format. */

/** Returns a random whole number below `n`. */
export type Roll = (n: number) => number

/** Values that replace values of another kind. */
const SWAPS: readonly string[] = [
  '0',
  '-1',
  '1e400',
  '"x"',
  '""',
  'null',
  '{}',
  '[]',
  '[{}]',
  'true',
  '"\\ud83d"',
]

/** A stream damaged in one to four ways: in its bytes, its lines, its frames or its values. */
export function corrupt(streams: readonly Buffer[], roll: Roll): Buffer {
  let text = streams[roll(streams.length)]?.toString('latin1') ?? ''
  for (let hits = roll(4); hits >= 0; hits -= 1) {
    text = damage(text, streams, roll)
  }
  return Buffer.from(text, 'latin1')
}

/** The text with one corruption. */
export function damage(text: string, streams: readonly Buffer[], roll: Roll): string {
  const index = roll(text.length + 1)
  const length = roll(8) === 0 ? roll(400) : roll(6)
  const [before, after] = [text.slice(0, index), text.slice(index)]
  switch (roll(9)) {
    case 0:
      return before + String.fromCharCode(roll(256)) + after.slice(1)
    case 1:
      return before + after.slice(length)
    case 2:
      return before + after.slice(0, length) + after
    case 3:
      return before
    case 4: {
      const other = streams[roll(streams.length)]?.toString('latin1') ?? ''
      const from = roll(other.length + 1)
      return before + other.slice(from, from + roll(600)) + after
    }
    case 5:
      return before + (['\n', '\r', '\n\n', '\r\n\r\n', 'data: ', 'event: error\n'][roll(6)] ?? '') + after
    case 6:
      return value(text, roll)
    default:
      return frames(text, roll)
  }
}

function value(text: string, roll: Roll): string {
  const from = roll(text.length + 1)
  const found = /:\s*("[^"]*"|-?\d+|null|true|\{\}|\[\])/g
  found.lastIndex = from
  const match = found.exec(text)
  if (match === null) return text
  const swapped = `:${SWAPS[roll(SWAPS.length)] ?? ''}`
  return text.slice(0, match.index) + swapped + text.slice(match.index + match[0].length)
}

/** Removes, duplicates or moves one event. */
function frames(text: string, roll: Roll): string {
  const end = text.includes('\r\n\r\n') ? '\r\n\r\n' : '\n\n'
  const list = text.split(end)
  const index = roll(list.length)
  const [one = ''] = list.splice(index, 1)
  const kind = roll(3)
  if (kind > 0) list.splice(roll(list.length + 1), 0, one)
  if (kind > 1) list.splice(index, 0, one)
  return list.join(end)
}
