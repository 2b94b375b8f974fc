/**
 * Goal: labels have bounded sizes and printable characters, and the store returns them unchanged.
 * Method: valid and invalid sets of labels, and the text of keys in the store.
 */
import t from 'tap'
import { checkedLabels, labelsText } from '../../src/accounts/labels.js'
import { GatewayError } from '../../src/errors.js'
import { readKey, writeKey } from '../../src/store/records/account-and-key-records.js'

void t.test('labels are sorted by name', (t) => {
  t.equal(
    labelsText(checkedLabels({ team: 'research', env: 'ci', 'a.b_c-9': '{x=1;"y"}' })),
    'a.b_c-9={x=1;"y"} env=ci team=research',
  )
  t.equal(labelsText({}), null)
  t.end()
})

/** The name of the refused field. */
function refusedAt(labels: Record<string, string>): string | undefined {
  try {
    checkedLabels(labels)
  } catch (error) {
    if (error instanceof GatewayError) return error.wire.param
  }
  return undefined
}

void t.test('an invalid label is refused with the field named', (t) => {
  const names = ['', 'Team', 'a b', 'a=b', 'ü', '__proto__', 'x'.repeat(33)]
  for (const name of names) t.equal(refusedAt(Object.fromEntries([[name, 'v']])), 'labels', name)
  for (const value of ['', 'a b', 'a,b', 'ü', 'a\u0000', 'a\n', 'x'.repeat(65)]) {
    t.equal(refusedAt({ team: value }), 'labels.team', value)
  }
  const many = Array.from({ length: 17 }, (_, index) => [`l${index}`, 'v'])
  t.equal(refusedAt(Object.fromEntries(many) as Record<string, string>), 'labels')
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
