/**
 * Goal: every kind of error and every type of event appears in a test.
 * Method: searches the quoted names in the texts of all tests outside this folder.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { ERRORS } from '../../src/errors.js'
import { filesBelow, withoutComments } from './source-tree.js'

const tests = filesBelow('test', '.ts')
  .filter(({ path }) => !path.startsWith('architecture/'))
  .map(({ text }) => withoutComments(text))

function isNamed(name: string, texts: readonly string[]): boolean {
  return texts.some((text) => text.includes(`'${name}'`))
}

function eventTypes(): string[] {
  const union = readFileSync('src/formats/chat/event.ts', 'utf8')
  return [...union.matchAll(/\{\s*type: '([a-z-]+)'/g)].map((match) => match[1] ?? '')
}

void t.test('every kind of error appears in a test', (t) => {
  const kinds = Object.keys(ERRORS)
  t.ok(kinds.length > 20)
  t.strictSame(
    kinds.filter((kind) => !isNamed(kind, tests)),
    [],
  )
  t.end()
})

void t.test('every type of event appears in a test', (t) => {
  const types = eventTypes()
  t.ok(types.length >= 18)
  t.strictSame(
    types.filter((type) => !isNamed(type, tests)),
    [],
  )
  t.end()
})

void t.test('a name that no test has is found', (t) => {
  t.notOk(isNamed('no-such-name', tests))
  t.notOk(isNamed('x', ["withXinIt 'xx' x"]))
  t.ok(isNamed('x', ["t.equal(kind, 'x')"]))
  t.end()
})
