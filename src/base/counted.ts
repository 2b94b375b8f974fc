/** A number with its noun, such as `1 key`, `2 keys` or `1 entry`, `2 entries`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`
}
