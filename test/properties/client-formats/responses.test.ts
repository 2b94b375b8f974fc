/**
 * Goal: a client of `POST /v1/responses` gets complete and correct replies from every upstream dialect,
 * regardless of chunk boundaries, passed-through streams included.
 * Method: prefixes, splits and seeded corruptions of every transcript; the events of whole streams are
 * checked one by one.
 */
import t from 'tap'
import { objectOf } from '../../../src/base/json.js'
import { faultsOfEvents } from '../../conformance/check-responses.js'
import { checkClient, pairsOf, type ClientCase } from './client-format.js'
import { framesOf, run, transcripts } from '../transcript-streams.js'

const CLIENT: ClientCase = {
  dialect: 'openai-responses',
  body: { model: 'client-model', input: 'Hello', include: ['reasoning.encrypted_content'] },
  endpoint: { operation: 'chat' },
  claims: (frames) => frames.some((data) => /"type"\s*:\s*"response\.(?:completed|incomplete)"/.test(data)),
}

checkClient(t, { ...CLIENT, body: { ...CLIENT.body, stream: true } })

void t.test('every stream follows the rules of the format', (t) => {
  let count = 0
  for (const pair of pairsOf({ ...CLIENT, body: { ...CLIENT.body, stream: true } })) {
    if (pair.passes) continue
    for (const { name, bytes, dialect } of transcripts) {
      if (dialect !== pair.dialect) continue
      const { out, outcome } = run(pair, [bytes])
      if (outcome !== 'complete') continue
      const events = framesOf(out).map((data) => objectOf(JSON.parse(data)))
      t.same(faultsOfEvents(events), [], `${pair.name}: ${name}`)
      count += 1
    }
  }
  t.ok(count > 20)
  t.end()
})
