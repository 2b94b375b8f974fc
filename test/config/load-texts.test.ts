/**
 * Goal: a process that receives the texts read by another process builds the same generation.
 * Method: a secret changes on disk between the two loads.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig, loadConfigText } from '../../src/config/load-config.js'
import { changed, MODELS } from './sample.js'

void t.test('texts read by one process build the same generation in another', (t) => {
  const folder = t.testdir({
    'gateway.yaml': changed('${KEY}', '${file:key}'),
    'models.yaml': MODELS,
    key: 'k-1\n',
  })
  const here = loadConfig(join(folder, 'gateway.yaml'), {})
  if (!here.ok) throw new Error(JSON.stringify(here.errors))
  writeFileSync(join(folder, 'key'), 'k-2')
  const copy = JSON.parse(JSON.stringify(here.sources)) as typeof here.sources
  const there = loadConfigText(copy, {})
  if (!there.ok) throw new Error(JSON.stringify(there.errors))
  t.strictSame(there.config, here.config)
  t.equal(there.fileHash, here.fileHash)
  t.match(here.fileHash, /^[0-9a-f]{64}$/)
  t.equal(there.config.upstreams['openai']?.apiKeys[0], 'k-1')
  t.end()
})
