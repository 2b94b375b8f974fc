/**
 * Goal: in a worker V8 finds the methods of strings without a slow lookup, even if a dependency derives from
 * `String`.
 * Method: a separate process loads a worker's modules and reads V8's state before and after.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'

const WORKER = fileURLToPath(new URL('../../../src/process/serve-worker.js', import.meta.url))

/** The output of a process that has loaded the modules of a worker and derived a class from `String`. */
async function printed(then: string): Promise<string> {
  const script = `
    const { settleStrings } = await import(${JSON.stringify(WORKER)})
    class Derived extends String {}
    ${then}
    console.log(%HasFastProperties(String.prototype))
  `
  const flags = ['--allow-natives-syntax', '--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, flags)
  return stdout.trim()
}

void t.test('a worker restores fast string methods before it serves', async (t) => {
  t.equal(await printed(''), 'false', 'without it string methods are slow, otherwise the test is void')
  t.equal(await printed('settleStrings()'), 'true')
  t.equal(await printed('settleStrings(); class Later extends String {}'), 'true', 'permanently')
})
