/**
 * Goal: each syntax error is reported once, with the wrong text.
 * Method: malformed texts through the loader.
 */
import t from 'tap'
import { problemsOf } from './sample.js'

void t.test('a syntax error is one problem, and so is each duplicate key', (t) => {
  for (const text of ['routes: [}\n- a: b: c\n  : ]]', '{ a: [ ] } }\nb: "x\nc: d', 'a:\n\tb: [\n c: }'])
    t.equal(problemsOf(text).length, 1, text)
  t.same(
    problemsOf('server: {}\nserver: {}\nroutes: []\nserver: {}\n').map((line) =>
      line.replace(/^.*:\d+:\d+: /, ''),
    ),
    ['Duplicate key "server" (lines 1 and 2)', 'Duplicate key "server" (lines 1 and 4)'],
  )
  t.notMatch(problemsOf('sk-abcdefghijklmnopqrst: 1\nsk-abcdefghijklmnopqrst: 2\n')[0], /abcdef/)
  t.end()
})
