/**
 * Goal: examples, documentation and the demo name models that providers still serve.
 * Method: every model id in them is looked up in the catalogue; one with an announced shutdown is refused.
 */
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../src/config/load-config.js'

const PLACES = ['README.md', 'docs/tutorial.md', 'docs/reference/clients.md', 'examples', 'src/cli']
const ID = /\b(?:gpt-[4-9][\w.-]*\w|claude-(?:opus|sonnet|haiku)-[\w.-]*\w|gemini-\d[\w.-]*\w)/g

function filesIn(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path).flatMap((name) => filesIn(join(path, name)))
}

void t.test('every model of an example is served without an announced end', (t) => {
  const loaded = loadConfig('config/gateway.yaml', {})
  if (!loaded.ok) throw new Error('config/gateway.yaml is not valid')
  let count = 0
  for (const file of PLACES.flatMap(filesIn)) {
    for (const [id] of readFileSync(file, 'utf8').matchAll(ID)) {
      count += 1
      const facts = loaded.catalogue.find(id)
      t.ok(facts !== null && facts.shutdownDate === undefined, `${file}: ${id}`)
    }
  }
  t.ok(count > 20)
  t.end()
})
