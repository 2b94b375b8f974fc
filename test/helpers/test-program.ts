/** Programs that tests start in processes of their own. */
import { programFile } from '../../src/config/package-file.js'
import { fileURLToPath } from 'node:url'

/**
 * The path of a program, by its path below `test/` without `.ts`: bundled with what it uses alone, see
 * `scripts/bundle-for-tests.mjs`, where each is listed.
 */
export function testProgram(name: string): string {
  return fileURLToPath(programFile(`programs/${name}.js`))
}

/**
 * Flags of Node for the gateway's program: the test's own of those for V8, see `run.ts`. With them it starts
 * in nine tenths of the CPU time.
 */
export const V8_FLAGS = process.execArgv.filter((flag) => flag.startsWith('--interrupt-budget='))
