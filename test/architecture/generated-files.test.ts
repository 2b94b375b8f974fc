/**
 * Goal: every generated file is up to date and has a first line that marks it as generated.
 * Method: generates each file and compares it with the one in the tree.
 */
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { GENERATED, GENERATED_TABLES } from '../../docs/generate/generate.js'

for (const { path, make } of GENERATED) {
  void t.test(`${path} is current`, async (t) => {
    const text = await readFile(path, 'utf8')
    t.equal(text, await make(), `run 'npm run generate' and commit ${path}`)
    t.match(text.split('\n')[0], /[Gg]enerated .*do not edit/, 'the first line marks it')
  })
}

for (const { path, update } of GENERATED_TABLES) {
  void t.test(`the table in ${path} is current`, async (t) => {
    const text = await readFile(path, 'utf8')
    t.equal(text, await update(text), `run 'npm run generate' and commit ${path}`)
    t.equal(await update(text.replace('the next target |', 'nothing |')), text, 'an edit is undone')
  })
}

void t.test('there are generated files', (t) => {
  t.ok(GENERATED.length >= 2)
  t.end()
})

void t.test('.gitattributes marks every generated file', async (t) => {
  const lines = (await readFile('.gitattributes', 'utf8')).split('\n')
  for (const { path } of GENERATED) t.ok(lines.includes(`${path} linguist-generated`), path)
})

void t.test('the README stays short', async (t) => {
  const lines = (await readFile('README.md', 'utf8')).trimEnd().split('\n').length
  t.ok(lines <= 150, `README.md has ${lines} lines, at most 150 are allowed`)
})

void t.test('LICENSE is the licence that package.json names', async (t) => {
  const { license } = JSON.parse(await readFile('package.json', 'utf8')) as { license: string }
  t.match(await readFile('LICENSE', 'utf8'), `${license} License`)
})
