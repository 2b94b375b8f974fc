/** Commands as a user types them: printed with what they print. */
import { spawn, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'

/** The result of a command. */
export interface Result {
  readonly status: number
  readonly out: string
  readonly err: string
}

/** Lines of output that are printed. */
const SHOWN_LINES = 12

/** Prints what a user sees. */
export function show(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** Runs a command to its end and prints it with the end of its output; `secret`: without the output. */
export async function shell(
  [program = '', ...args]: readonly string[],
  { secret = false, ...options }: SpawnOptions & { readonly secret?: boolean } = {},
): Promise<Result> {
  const beganMs = performance.now()
  show(`$ ${[program, ...args].join(' ').slice(0, 200)}`)
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'close') as Promise<[number | null]>
  const [[code], out, err] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  if (!secret) for (const line of `${out}${err}`.trim().split('\n').slice(-SHOWN_LINES)) show(`  ${line}`)
  show(`  (${((performance.now() - beganMs) / 1000).toFixed(1)} s, exit ${String(code)})`)
  return { status: code ?? 1, out, err }
}

/** As `shell`; fails the test if the command fails. Returns its output. */
export async function succeeds(
  t: Test,
  command: readonly string[],
  options: Parameters<typeof shell>[1] = {},
): Promise<string> {
  const { status, out, err } = await shell(command, options)
  if (status !== 0)
    throw new Error(`${command.slice(0, 3).join(' ')} exited with ${String(status)}: ${err.slice(-500)}`)
  t.pass(command.slice(0, 3).join(' '))
  return out
}

/** Tries until the value is there; fails after `limitMs`. */
export async function eventually<T>(
  what: string,
  limitMs: number,
  attempt: () => Promise<T | null>,
): Promise<T> {
  const untilMs = performance.now() + limitMs
  for (;;) {
    const value = await attempt()
    if (value !== null) return value
    if (performance.now() > untilMs) throw new Error(`not within ${String(limitMs)} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
