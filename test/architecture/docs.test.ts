/**
 * Goal: every generated file is what the code would generate now, and says on its first line that it
 * is generated.
 * Method: each is made again and compared with the one in the tree.
 */
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { GENERATED } from '../../src/generate.js'

for (const { path, make } of GENERATED) {
  void t.test(`${path} is current`, async (t) => {
    const text = await readFile(path, 'utf8')
    t.equal(text, await make(), `run 'npm run generate' and commit ${path}`)
    t.match(text.split('\n')[0], /[Gg]enerated .*do not edit/, 'the first line says so')
  })
}

void t.test('there are generated files', (t) => {
  t.ok(GENERATED.length >= 2)
  t.end()
})
