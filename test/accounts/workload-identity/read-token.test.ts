/**
 * Goal: a token of a wrong form is refused before any key is used, and no message quotes it.
 * Method: headers and claims that break one rule each.
 */
import t from 'tap'
import { isCompactToken, readToken } from '../../../src/accounts/workload-identity/read-token.js'
import { GatewayError } from '../../../src/errors.js'
import { rawToken } from '../../helpers/issuer.js'

const HEADER = { alg: 'ES256', kid: 'k' }
const CLAIMS = { iss: 'https://issuer', sub: 'secret-subject', aud: ['sluice'], exp: 2_000_000_000 }

function refusal(token: string): GatewayError | null {
  try {
    readToken(token)
    return null
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

void t.test('reads a token', (t) => {
  const read = readToken(rawToken({ ...HEADER, typ: 'JWT', jku: 'https://evil' }, CLAIMS))
  const expected = { alg: 'ES256', kid: 'k', aud: ['sluice'], sub: 'secret-subject', jti: null }
  t.match(read, { ...expected, iss: 'https://issuer', nbf: null, exp: 2_000_000_000 })
  t.equal(readToken(rawToken({ alg: 'EdDSA' }, { ...CLAIMS, iss: undefined })).iss, '')
  t.end()
})

void t.test('refuses other forms', (t) => {
  const wrong: Record<string, string> = {
    none: rawToken({ ...HEADER, alg: 'none' }, CLAIMS),
    'none without a signature': rawToken({ ...HEADER, alg: 'none' }, CLAIMS, ''),
    'no signature': rawToken(HEADER, CLAIMS, ''),
    'a symmetric algorithm': rawToken({ ...HEADER, alg: 'HS256' }, CLAIMS),
    'another case': rawToken({ ...HEADER, alg: 'es256' }, CLAIMS),
    'no algorithm': rawToken({ kid: 'k' }, CLAIMS),
    'a list as algorithm': rawToken({ alg: ['ES256'] }, CLAIMS),
    'critical headers': rawToken({ ...HEADER, crit: ['exp'], exp: 1 }, CLAIMS),
    'an unencoded payload': rawToken({ ...HEADER, b64: false }, CLAIMS),
    'a number as kid': rawToken({ alg: 'ES256', kid: 7 }, CLAIMS),
    'a JWE': `${rawToken({ alg: 'RSA-OAEP', enc: 'A256GCM' }, CLAIMS)}.YQ.YQ`,
    'a duplicate claim': rawToken(HEADER, '{"iss":"a","exp":2000000000,"iss":"b"}'),
    'an escaped duplicate': rawToken(HEADER, '{"sub":"a","exp":2000000000,"s\\u0075b":"b"}'),
    'a duplicate header': rawToken('{"alg":"ES256","alg":"none"}', CLAIMS),
    'a nested duplicate': rawToken(HEADER, '{"exp":2000000000,"a":{"b":1,"b":2}}'),
    'no JSON': rawToken(HEADER, 'text'),
    'a list': rawToken(HEADER, []),
    'bytes after the object': rawToken(HEADER, `${JSON.stringify(CLAIMS)} x`),
    'deep nesting': rawToken(HEADER, `{"exp":1,"a":${'['.repeat(20)}${']'.repeat(20)}}`),
    'no exp': rawToken(HEADER, { ...CLAIMS, exp: undefined }),
    'a text as exp': rawToken(HEADER, { ...CLAIMS, exp: '2000000000' }),
    'null as exp': rawToken(HEADER, { ...CLAIMS, exp: null }),
    'an infinite exp': rawToken(HEADER, '{"exp":1e999}'),
    'a text as nbf': rawToken(HEADER, { ...CLAIMS, nbf: '1' }),
    'a number as sub': rawToken(HEADER, { ...CLAIMS, sub: 7 }),
    'a number as jti': rawToken(HEADER, { ...CLAIMS, jti: 7 }),
    'a number as iss': rawToken(HEADER, { ...CLAIMS, iss: 7 }),
    'a number in aud': rawToken(HEADER, { ...CLAIMS, aud: ['sluice', 7] }),
    'a map as aud': rawToken(HEADER, { ...CLAIMS, aud: {} }),
    'more than 16 KiB': rawToken(HEADER, { ...CLAIMS, pad: 'x'.repeat(16_384) }),
    'unused bits': rawToken(HEADER, CLAIMS, 'QR'),
  }
  for (const [name, token] of Object.entries(wrong)) {
    const error = refusal(token)
    t.equal(error?.kind, 'jwt_invalid', name)
    t.notMatch(error?.message ?? '', /secret-subject|evil/, name)
  }
  t.end()
})

void t.test('recognises the compact form', (t) => {
  for (const token of [rawToken(HEADER, CLAIMS), 'a.b.c', 'a.b.', 'a..c', 'a.b.c.d.e', 'a....']) {
    t.ok(isCompactToken(token), token)
  }
  const others = ['', 'sk_abc', 'a.b', '.b.c', 'a.b.c.d', 'a.b.c ', 'a.b+.c', 'a.b.c.d.e.f', 'a=.b.c']
  for (const text of others) t.notOk(isCompactToken(text), text)
  t.end()
})
