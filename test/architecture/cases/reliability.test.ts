/**
 * Goal: every row of the fault matrix of the design (upstream faults D, connections and retries E, slow
 * clients F, overload G) has a test whose name begins with its id.
 * Method: compares the ids in the titles of all tests with the rows below.
 */
import t from 'tap'
import { filesBelow } from '../source-tree.js'

/** A short text for each row. Numbers have gaps. */
const ROWS: Readonly<Record<string, string>> = {
  'D-60': 'a stream reset or cut within an event, a chunk or its length',
  'D-61': 'the end of the connection after the finish, before the terminator',
  'D-62': 'a terminator without a finish reason',
  'D-63': 'a 200 without content',
  'D-65': 'silence in each phase of a reply',
  'D-66': 'broken, unknown, doubled and late events',
  'D-67': 'error statuses before the stream, in any body',
  'D-68': 'every cut position within characters and line ends',
  'D-69': 'tiny chunks, giant events and events without end',
  'D-75': 'token counts that are missing, impossible or doubled',
  'D-76': 'a compressed reply that was not asked for',
  'D-77': 'other content types, other 2xx, 1xx and redirects',
  'D-78': 'an upstream that does not end after its terminator',
  'E-79': 'refused connections, names that do not resolve, private addresses',
  'E-85': 'failures in a row, and at a rate, open the breaker',
  'E-86': 'recovery: one test at a time, then a slow start',
  'E-87': 'the breakers of all upstreams are open',
  'E-88': 'Retry-After, and credentials that rest',
  'E-89': 'the deadline of the client over several attempts',
  'E-91': 'target and fallback fail before content',
  'F-93': 'slow heads from many clients',
  'F-94': 'slow bodies',
  'F-95': 'connections on which nothing is sent',
  'F-96': 'clients that never read',
  'F-97': 'a client that resets while it is waited for',
  'F-98': 'a client that reads slowly for long',
  'F-99': 'connections that come and go',
  'F-100': 'many streams of one key, and many connections',
  'F-102': 'requests before the reply to the one before',
  'F-103': 'connection: close, and long keep-alive wishes',
  'G-105': 'three and ten times the load',
  'G-106': 'a late event loop',
  'G-107': 'a full heap',
  'G-108': 'no more open files',
  'G-109': 'no more ports to the upstream',
  'G-110': 'a full disk',
  'G-111': 'one tenant at a hundred times its limit',
  'G-112': 'health and metrics under overload',
}

const TITLE = /(?:\.test\(\s*|^\s*)(['`"])((?:[A-Z]-\d+, )*[A-Z]-\d+): /gm

function idsIn(texts: readonly string[]): Set<string> {
  const titles = texts.flatMap((text) => [...text.matchAll(TITLE)])
  return new Set(titles.flatMap(([, , ids = '']) => ids.split(', ')))
}

function withoutTest(texts: readonly string[]): string[] {
  const found = idsIn(texts)
  return Object.keys(ROWS).filter((id) => !found.has(id))
}

void t.test('every row has a test', (t) => {
  const texts = filesBelow('test', '.test.ts').map(({ text }) => text)
  t.strictSame(withoutTest(texts), [])
  t.equal(Object.keys(ROWS).length, 38)
  t.end()
})

void t.test('a row without a test is found', (t) => {
  const all = Object.keys(ROWS).map((id) => `void t.test('${id}: it holds', (t) => {})`)
  t.strictSame(withoutTest(all), [])
  t.strictSame(withoutTest(all.slice(1)), ['D-60'])
  t.strictSame(withoutTest([...all.slice(2), 't.test(`D-60, D-61: both`, f)']), [])
  t.strictSame(withoutTest([...all.slice(1), '// D-60: a comment']), ['D-60'])
  t.end()
})
