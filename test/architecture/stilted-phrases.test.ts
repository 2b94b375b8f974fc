/**
 * Goal: the project's text uses plain technical English.
 * Method: a list of phrases to avoid, matched against prose, comments, messages and identifiers of the
 * checked folders.
 */
import t from 'tap'
import { findStiltedPhrases, findStiltedPhrasesBelow } from './stilted-phrases.js'

/** The whole tree; recorded and generated text is skipped by the scan. */
const CHECKED = [
  ...['src', 'test', 'bench', 'docs', 'examples', 'grafana', 'deploy', 'config'],
  ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'compose.yaml'],
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
  t.equal(found("import { x } from './key-told.js'"), 'told')
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
