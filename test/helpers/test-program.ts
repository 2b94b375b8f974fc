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
