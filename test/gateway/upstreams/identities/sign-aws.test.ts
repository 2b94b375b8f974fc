/**
 * Goal: signatures are those of AWS's published test suite and of AWS's own signer, over the path as
 * sent and over large bodies.
 * Method: the vectors' requests and signatures; `@smithy/signature-v4` signs the same requests.
 */
import { createHash, createHmac } from 'node:crypto'
import { SignatureV4 } from '@smithy/signature-v4'
import t from 'tap'
import {
  bodyHashOf,
  canonicalHeaders,
  signatureHeaders,
  signatureOf,
} from '../../../../src/gateway/upstreams/identities/sign-aws.js'

const KEYS = {
  keyId: 'AKIDEXAMPLE',
  secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: null,
}
const SCOPE = { region: 'us-east-1', service: 'service' }
const TIME = '20150830T123600Z'
const sha = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex')

interface Summing {
  update(data: Buffer): unknown
  digest(): Buffer
}

/** The hash in the form that the signer expects. */
class NodeSha256 {
  private readonly secret: string | Uint8Array | undefined
  private hash: Summing

  constructor(secret?: string | Uint8Array | ArrayBuffer | ArrayBufferView) {
    this.secret = secret === undefined ? undefined : bytesOf(secret)
    this.hash = this.fresh()
  }

  update(data: string | Uint8Array | ArrayBuffer | ArrayBufferView): void {
    this.hash.update(bytesOf(data))
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.hash.digest())
  }

  reset(): void {
    this.hash = this.fresh()
  }

  private fresh(): Summing {
    return this.secret === undefined ? createHash('sha256') : createHmac('sha256', this.secret)
  }
}

function bytesOf(data: string | Uint8Array | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof data === 'string') return Buffer.from(data)
  return ArrayBuffer.isView(data)
    ? Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    : Buffer.from(data)
}

interface Vector {
  readonly name: string
  readonly method?: string
  readonly path?: string
  readonly headers?: readonly (readonly [string, string])[]
  readonly body?: string
  readonly signature: string
}

const UNRESERVED = '-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** From `aws-sig-v4-test-suite`; every request has `host` and `x-amz-date` besides these headers. */
const VECTORS: readonly Vector[] = [
  {
    name: 'get-vanilla',
    signature: '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  },
  {
    name: 'get-vanilla-query-order-key-case',
    path: '/?Param2=value2&Param1=value1',
    signature: 'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  },
  {
    name: 'get-vanilla-empty-query-key',
    path: '/?Param1=value1',
    signature: 'a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb',
  },
  {
    name: 'get-vanilla-query-unreserved',
    path: `/?${UNRESERVED}=${UNRESERVED}`,
    signature: '9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197',
  },
  {
    name: 'get-vanilla-utf8-query',
    path: '/?%E1%88%B4=bar',
    signature: '2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04',
  },
  {
    name: 'post-vanilla',
    method: 'POST',
    signature: '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  },
  {
    name: 'post-header-key-sort',
    method: 'POST',
    headers: [['my-header1', 'value1']],
    signature: 'c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c',
  },
  {
    name: 'post-x-www-form-urlencoded',
    method: 'POST',
    headers: [['content-type', 'application/x-www-form-urlencoded']],
    body: 'Param1=value1',
    signature: 'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  },
]

void t.test("AWS's test vectors", (t) => {
  for (const { name, method = 'GET', path = '/', headers = [], body = '', signature } of VECTORS) {
    const own = [...headers, ['host', 'example.amazonaws.com'] as const, ['x-amz-date', TIME] as const]
    const request = { method, path, bodyHash: sha(body) }
    const signed = canonicalHeaders(own)
    t.equal(signatureOf(request, signed, KEYS, SCOPE, TIME).signature, signature, name)
  }
  t.end()
})

void t.test('the same signature as the signer of the AWS SDK', async (t) => {
  const now = new Date('2026-11-26T10:15:00Z')
  const signer = new SignatureV4({
    service: 'bedrock',
    region: 'eu-west-1',
    credentials: { accessKeyId: KEYS.keyId, secretAccessKey: KEYS.secret, sessionToken: 'a/b+c==' },
    sha256: NodeSha256,
  })
  const paths = [
    '/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke',
    '/model/eu.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke',
    '/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Fx/converse-stream',
    "/model/a'b(c)*!/invoke",
    '/openai/v1/chat/completions?b=2&a=1&a=0&c',
  ]
  for (const sent of paths) {
    const [path = '', query = ''] = sent.split('?')
    const body = '{"text":"Grüße"}'
    const parameters: Record<string, string[]> = {}
    for (const [name, value] of new URLSearchParams(query)) (parameters[name] ??= []).push(value)
    const theirs = await signer.sign(
      {
        method: 'POST',
        protocol: 'https:',
        hostname: 'bedrock.example.com',
        path,
        query: parameters,
        headers: { host: 'bedrock.example.com', 'content-type': 'application/json' },
        body,
      },
      { signingDate: now },
    )
    const ours = signatureHeaders(
      {
        method: 'POST',
        path: sent,
        host: 'bedrock.example.com',
        headers: ['content-type', 'application/json', 'accept', '*/*'],
        bodyHash: await bodyHashOf(body),
      },
      { ...KEYS, sessionToken: 'a/b+c==' },
      { region: 'eu-west-1', service: 'bedrock' },
      now.getTime(),
    )
    const found: Record<string, string> = {}
    for (let at = 0; at < ours.length; at += 2) found[ours[at] ?? ''] = ours[at + 1] ?? ''
    for (const [name, value] of Object.entries(found)) {
      t.equal(value, theirs.headers[name], `${sent}: ${name}`)
    }
  }
})

void t.test('headers in any number and order have the signature of the AWS SDK', async (t) => {
  const now = new Date('2026-11-26T10:15:00Z')
  const host = 'bedrock.example.com'
  const lists: string[][] = [
    [],
    ['Content-Type', ' application/json;  charset=utf-8 '],
    ['x-amz-zone', 'b  c', 'content-type', 'application/json', 'x-amz-a', 'd'],
    ['x-amzn-bedrock-trace', 'ENABLED'],
  ]
  for (const headers of lists) {
    for (const sessionToken of [null, 'a/b+c==']) {
      const signed: Record<string, string> = { host }
      for (let at = 0; at < headers.length; at += 2) {
        const name = (headers[at] ?? '').toLowerCase()
        if (!name.startsWith('x-amzn-')) signed[name] = headers[at + 1] ?? ''
      }
      const signer = new SignatureV4({
        service: 'bedrock',
        region: 'eu-west-1',
        credentials: {
          accessKeyId: KEYS.keyId,
          secretAccessKey: KEYS.secret,
          ...(sessionToken !== null && { sessionToken }),
        },
        sha256: NodeSha256,
      })
      const request = { method: 'GET', protocol: 'https:', hostname: host, path: '/models' }
      const theirs = await signer.sign({ ...request, headers: signed }, { signingDate: now })
      const ours = signatureHeaders(
        { ...request, host, headers, bodyHash: await bodyHashOf(null) },
        { ...KEYS, sessionToken },
        { region: 'eu-west-1', service: 'bedrock' },
        now.getTime(),
      )
      t.equal(ours.at(-1), theirs.headers['authorization'], headers.join())
    }
  }
})

void t.test('a large body is hashed in several turns of the event loop', async (t) => {
  for (const body of [Buffer.alloc(5_000_000, 'x'), 'ü'.repeat(2_000_000)]) {
    let turns = 0
    const count = setInterval(() => (turns += 1), 0)
    const hashed = bodyHashOf(body)
    t.ok(hashed instanceof Promise)
    t.equal(await hashed, sha(Buffer.from(body)))
    clearInterval(count)
  }
  t.equal(bodyHashOf(null), sha(''))
})
