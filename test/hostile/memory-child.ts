/**
 * Started by `memory.test.ts` with `--expose-gc` and the name of a body: prints the memory of the body while
 * an upstream works on it, as a multiple of its size, for each encoder.
 */
import { HOSTILE } from './costly-bodies.js'
import { ENCODERS, processBody } from './measure-steps.js'

const name = process.argv[2] ?? ''
const make = HOSTILE.find((each) => each.name === name)?.make
const collect = globalThis.gc
if (make === undefined || collect === undefined) throw new Error(`no body ${name}, or no --expose-gc`)

function heldBytes(): number {
  // The first run finds unreferenced buffers, the second one frees their memory.
  for (let round = 0; round < 3; round += 1) collect?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const found: Record<string, number> = {}
const warm = Buffer.from('{"model":"m","messages":[{"role":"user","content":"Hi"}]}')
for (const encoder of ENCODERS) processBody(warm, encoder)
const body = Buffer.from(make())

/** The memory of the body for this encoder; it is freed before the next one. */
function timesHeld(encoder: string): number {
  const before = heldBytes()
  const { held } = processBody(body, encoder)
  const after = heldBytes()
  return held.length === 0 ? 0 : (after - before) / body.length
}

for (const encoder of ENCODERS) found[encoder] = timesHeld(encoder)
process.stdout.write(JSON.stringify(found))
