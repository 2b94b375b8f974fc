/** Goal: errors in `notify` and `telemetry` have their position; an empty secret is refused. */
import t from 'tap'
import { problemsOf } from '../sample.js'

const GOOD = `
upstreams: { local: { dialect: openai-chat, base_url: http://127.0.0.1:1/v1 } }
routes: [{ prefix: a, upstream: local }]
`
const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`

function problem(yaml: string): string {
  return problemsOf(GOOD + yaml, {}).join('\n')
}

void t.test('valid sections are accepted', (t) => {
  for (const yaml of [
    `notify: [{ url: 'https://a.example/x?y=1', secret: ${SECRET} }]`,
    `notify: [{ url: 'http://127.0.0.1:9', secret: a-text-of-16-characters, events: [budget, breaker], allow_private_address: true }]`,
    'telemetry: { otlp: http://127.0.0.1:4318, capture_content: true }',
  ]) {
    t.equal(problem(yaml), '', yaml)
  }
  t.end()
})

void t.test('invalid settings are reported by name', (t) => {
  const cases: [string, RegExp][] = [
    [`notify: [{ url: 'https://a.example', secret: '' }]`, /notify\[0\]\.secret.*16 to 512/],
    [`notify: [{ url: 'https://a.example', secret: short }]`, /notify\[0\]\.secret/],
    [`notify: [{ url: 'https://a.example', secret: whsec_ }]`, /24 to 64 bytes/],
    [`notify: [{ url: 'https://a.example', secret: whsec_AAAA }]`, /24 to 64 bytes/],
    [`notify: [{ url: 'https://a.example' }]`, /notify\[0\].*secret/],
    [`notify: [{ url: 'ftp://a.example', secret: ${SECRET} }]`, /notify\[0\]\.url.*https/],
    [`notify: [{ url: 'https://u:p@a.example', secret: ${SECRET} }]`, /must not contain a user/],
    [`notify: [{ url: 'https://a.example', secret: ${SECRET}, events: [budgets] }]`, /events/],
    [`notify: [{ url: 'https://a.example', secret: ${SECRET}, events: [] }]`, /events/],
    ['telemetry: { otlp: localhost:4318 }', /telemetry\.otlp.*http/],
  ]
  for (const [yaml, expected] of cases) {
    t.match(problem(yaml), expected, yaml)
    t.notMatch(problem(yaml), SECRET.slice(6), 'no secret in a message')
  }
  t.end()
})
