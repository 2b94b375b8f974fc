/**
 * Goal: in a worker the globals that every request uses are plain values instead of getters.
 * Method: a separate process loads the modules of a worker and describes its globals before and after.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'

const WORKER = fileURLToPath(new URL('../../src/process/serve-worker.js', import.meta.url))

/** For each of the globals, whether it is a value, in a process that has loaded the worker's modules. */
async function printed(then: string): Promise<string> {
  const script = `
    const { settleGlobals } = await import(${JSON.stringify(WORKER)})
    const before = [performance, Buffer, process]
    ${then}
    const names = ['performance', 'Buffer', 'process']
    const found = names.map((name) => Object.getOwnPropertyDescriptor(globalThis, name))
    console.log(found.map(({ value }, at) => value === before[at]).join(' '))
  `
  const flags = ['--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, flags)
  return stdout.trim()
}

void t.test('a worker redefines its globals as values before it serves', async (t) => {
  t.match(await printed(''), 'false', 'without it there is a getter, otherwise the test is void')
  t.equal(await printed('settleGlobals()'), 'true true true', 'the same globals, as values')
})
