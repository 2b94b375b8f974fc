/**
 * Goal: an expression reads exactly the claim that it names, and nothing for a value that is no text, number
 * or boolean.
 * Method: expressions over one set of claims.
 */
import t from 'tap'
import {
  claimPathOf,
  evaluate,
  parseExpression,
} from '../../../src/accounts/workload-identity/claim-expressions.js'
import type { JsonObject } from '../../../src/base/json.js'

const CLAIMS: JsonObject = {
  sub: 'system:serviceaccount:research:batch',
  'kubernetes.io': { namespace: 'research', pod: { name: 'p-1' } },
  'https://example.com/team': 'a',
  'tilde~name': 'b',
  '~1': 'escaped twice',
  admin: true,
  number: 7,
  large: 2 ** 64,
  none: null,
  list: ['a'],
  __proto__: { polluted: 'x' },
}

function value(text: string): string | null {
  const expression = parseExpression(text)
  if ('problem' in expression) throw new Error(expression.problem)
  return evaluate(expression, CLAIMS)
}

void t.test('reads claims', (t) => {
  t.equal(value('${claims.sub}'), 'system:serviceaccount:research:batch')
  t.equal(value('${claims.kubernetes.io/namespace}'), 'research', 'a name may have dots')
  t.equal(value('${claims.kubernetes.io/pod/name}'), 'p-1')
  t.equal(value('team-${claims.number}-${claims.admin}!'), 'team-7-true!', 'text around is kept')
  t.equal(value('${claims.https:~1~1example.com~1team}'), 'a')
  t.equal(value('${claims.tilde~0name}'), 'b')
  t.equal(value('${claims.~01}'), 'escaped twice')
  t.equal(value('constant'), 'constant')
  t.equal(value('$${claims.sub}'), '${claims.sub}', 'an escape')
  const missing = ['missing', 'none', 'list', 'list/0', 'kubernetes.io', 'sub/length', 'toString']
  for (const name of [...missing, 'large', '__proto__/toString', 'constructor/name']) {
    t.equal(value(`a\${claims.${name}}`), null, name)
  }
  t.end()
})

void t.test('refuses what is no expression', (t) => {
  for (const text of ['${claims.}', '${claims.a//b}', '${sub}', '${claims.a', '${claims.a~2}']) {
    t.hasProp(parseExpression(text), 'problem', text)
  }
  t.equal(claimPathOf('env'), null)
  t.same(claimPathOf('claims.a/b'), ['a', 'b'])
  t.end()
})
