/**
 * Goal: the tables of the client formats in `docs/reference/dialects.md` are correct for a client's own
 * dialect, and every field that does not reach another upstream is reported or refused by name.
 */
import t from 'tap'
import { CLIENTS } from '../../../docs/generate/dialect-matrix/messages-clients.js'
import { COLUMNS, translateRequestConcept } from '../../../docs/generate/dialect-matrix/outcomes.js'
import { resolveEndpoint } from '../../../src/formats/index.js'
import { factsFor } from '../../../src/config/catalogue.js'
import { loadConfig } from '../../../src/config/load-config.js'

const loaded = loadConfig('config/gateway.yaml', {})
if (!loaded.ok) throw new Error('config/gateway.yaml is not good')
const { catalogue } = loaded

for (const { path, plain, concepts } of CLIENTS) {
  for (const { dialect, model } of COLUMNS) {
    void t.test(`${path} for ${dialect}`, (t) => {
      const isOwn = resolveEndpoint('POST', path)?.dialect === dialect
      for (const { name, base, members } of concepts) {
        const facts = factsFor(catalogue, model)
        const { outcome, reported } = translateRequestConcept({ ...plain, ...base }, members, {
          dialect,
          facts,
          path,
        })
        if (isOwn) t.ok(outcome === 'kept', `${name} passes`)
        else if (outcome === 'lost' || outcome === 'rejected') t.ok(reported[0], `${name} is named`)
      }
      t.end()
    })
  }
}
