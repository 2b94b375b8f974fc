/** The position of a scan in a body: its open objects and arrays, and the path for errors. */

/** An open object or array. */
export interface Level {
  readonly isArray: boolean
  /** Number of values so far. */
  count: number
  /** The latest key of an object. */
  key: string
  keys: string[]
  /** All keys, from the ninth on. */
  index: Set<string> | null
}

/** Length of a path in errors. */
const PATH_CHARS = 200

/** The path of the latest value: `messages[2].content`. A long path is shortened. */
export function pathOf(levels: readonly Level[]): string {
  let path = ''
  for (const level of levels) {
    if (level.count === 0) break
    if (level.isArray) path += `[${level.count - 1}]`
    else if (/^[A-Za-z_$][\w$-]*$/.test(level.key)) path += `${path && '.'}${level.key}`
    else path += `[${JSON.stringify(level.key)}]`
    if (path.length > PATH_CHARS) return `${path.slice(0, PATH_CHARS)}…`
  }
  return path
}
