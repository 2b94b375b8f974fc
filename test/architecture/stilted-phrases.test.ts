/**
 * Goal: the project's text uses plain technical English.
 * Method: a list of phrases to avoid, matched against prose, comments, messages and identifiers of the checked folders.
 */
import t from 'tap'
import { findStiltedPhrases, findStiltedPhrasesBelow } from './stilted-phrases.js'

/** Files and folders without findings. */
const CHECKED = [
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'README.md',
  'SECURITY.md',
  'bench',
  'compose.yaml',
  'deploy/helm',
  'docs/README.md',
  'docs/decisions',
  'docs/explanation',
  'docs/how-to',
  'docs/tutorial.md',
  'examples',
  'src/chat',
  'src/dialects',
  'src/main.ts',
  'src/gateway',
  'src/ledger',
  'src/limits',
  'src/main.ts',
  'src/routing',
  'src/reasoning',
  'grafana',
  'src/dashboard',
  'src/dialects/anthropic',
  'src/dialects/gemini',
  'src/dialects/openai-responses',
  'src/documentation',
  'src/emulator',
  'src/main.ts',
  'src/observe',
  'src/store/audit-trail.ts',
  'src/store/build-store.ts',
  'src/store/error-log.ts',
  'src/store/errors.ts',
  'src/store/fleet.ts',
  'src/store/ledger.ts',
  'src/store/list-all.ts',
  'src/store/migrate',
  'src/store/open-store.ts',
  'src/store/records',
  'src/store/redis',
  'src/store/remove-ended-keys.ts',
  'src/store/sign-in-tokens.ts',
  'src/store/sqlite',
  'src/store/store-identity.ts',
  'src/store/store.ts',
  'src/store/throttle.ts',
  'src/wire',
  'test/accounts',
  'test/architecture',
  'test/auth',
  'test/chat',
  'test/cli',
  'src/upstreams',
  'test/config',
  'test/conformance',
  'test/dashboard',
  'test/deploy',
  'test/conformance',
  'test/dialects/anthropic',
  'test/dialects/gemini',
  'test/documentation',
  'test/emulator',
  'test/examples',
  'test/examples',
  'test/dialects',
  'test/examples',
  'test/fuzz',
  'test/golden-requests.test.ts',
  'test/golden.test.ts',
  'test/grafana',
  'test/fuzz',
  'test/helpers',
  'test/helpers',
  'test/edge-cases',
  'test/gateway',
  'test/hostile',
  'test/http',
  'test/ledger',
  'test/limits',
  'test/native',
  'test/observe',
  'test/outage',
  'test/properties',
  'test/reasoning',
  'test/specification',
  'test/store',
  'test/transcripts',
  'test/wire',
  'test/routing',
  'test/specification',
  'test/store',
  'test/transcripts',
  'test/upstreams',
  'src/accounts',
  'src/auth',
  'src/cli',
  'src/config',
  'src/error-cause.ts',
  'src/errors.ts',
  'src/files',
  'src/http',
  'src/process',
  'src/secrets',
  'test/process',
  'test/faults',
  'test/cluster',
  'test/error-cause.test.ts',
  'test/log.test.ts',
  'test/run.ts',
  'test/setup.ts',
]

for (const path of CHECKED) {
  void t.test(`${path} contains no stilted phrase`, (t) => {
    t.strictSame(findStiltedPhrasesBelow(path), [])
    t.end()
  })
}

void t.test('a stilted phrase is found in prose, identifiers and file names', (t) => {
  const found = (text: string): string =>
    findStiltedPhrases('x.ts', text)
      .map((finding) => finding.found)
      .join()
  t.equal(found('the budget is told the price'), 'told')
  t.equal(found('const wasTold = 1'), 'told')
  t.equal(found("import { x } from './key-verdict.js'"), 'verdict')
  t.match(found('// Where the store is down, requests wait.'), /where/)
  t.equal(found('Where is the price of a token applied?'), '')
  t.equal(found('server.keepAliveTimeout = 5000'), '')
  t.equal(found('retries the request on the next upstream'), '')
  t.end()
})

void t.test('a finding has its line and the plain words', (t) => {
  const [finding] = findStiltedPhrases('README.md', 'one\nthe file says two')
  t.match(finding, { path: 'README.md', line: 2, found: 'says', instead: /states/ })
  t.end()
})
