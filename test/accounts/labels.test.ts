/**
 * Goal: labels have bounded sizes and printable characters, and the store returns them unchanged.
 * Method: valid and invalid sets of labels, and the text of keys in the store.
 */
import t from 'tap'
import { LABELS } from '../../src/accounts/changes/fields.js'
import { labelsText, type Labels } from '../../src/accounts/labels.js'
import { readKey, writeKey } from '../../src/store/records/account-and-key-records.js'

void t.test('labels are sorted by name', (t) => {
  t.equal(
    labelsText(LABELS.parse({ team: 'research', env: 'ci', 'a.b_c-9': '{x=1;"y"}' }) as Labels),
    'a.b_c-9={x=1;"y"} env=ci team=research',
  )
  t.equal(labelsText({}), null)
  t.end()
})

/** The path of the refused value. */
function refusedAt(labels: Record<string, string>): string | undefined {
  return LABELS.safeParse(labels).error?.issues[0]?.path.join('.')
}

void t.test('an invalid label is refused with the field named', (t) => {
  const names = ['', 'Team', 'a b', 'a=b', 'ü', 'x'.repeat(33)]
  for (const name of names) t.equal(refusedAt({ [name]: 'v' }), name, name)
  const prototype = JSON.parse('{"__proto__":"v"}') as Record<string, string>
  t.notSame(LABELS.safeParse(prototype).data, prototype, 'an object has __proto__ already')
  for (const value of ['', 'a b', 'a,b', 'ü', 'a\u0000', 'a\n', 'x'.repeat(65)]) {
    t.equal(refusedAt({ team: value }), 'team', value)
  }
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`l${index}`, 'v']))
  t.equal(refusedAt(many), '')
  t.end()
})

const KEY = {
  id: 'key_1',
  accountId: 'acc_1',
  name: 'n',
  digest: 'd',
  prefix: 'sk_a',
  lastFour: 'wxyz',
  createdAtMs: 1,
}

void t.test('the text of a key contains its labels, and an older version refuses it', (t) => {
  const labelled = { ...KEY, labels: { team: 'a' } }
  t.same(readKey(writeKey(labelled)), labelled)
  t.match(JSON.parse(writeKey(labelled)), { v: 3 })
  t.match(JSON.parse(writeKey({ ...KEY, models: ['m'] })), { v: 2 })
  t.match(JSON.parse(writeKey(KEY)), { v: 1 })
  const withTools = { ...labelled, allowTools: [] }
  t.same(readKey(writeKey(withTools)), withTools)
  t.match(JSON.parse(writeKey(withTools)), { v: 4 })
  for (const labels of [5, 'team=a', { team: 1 }]) {
    t.throws(() => readKey(JSON.stringify({ v: 3, ...KEY, labels })), /labels/)
  }
  t.throws(() => readKey(JSON.stringify({ v: 6, ...KEY })), /'v'/)
  t.end()
})
