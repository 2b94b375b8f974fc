/**
 * Goal: the page names every action that an entry of the audit log may have in words.
 * Method: the actions in the source, as texts and as templates of a few words, compared with the page's list.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { filesBelow } from './source-tree.js'

const PAGE = readFileSync('src/dashboard/web/format/audit-texts.ts', 'utf8')
/** Those that the page has words for. */
const NAMED = [...PAGE.matchAll(/^ {2}'([a-z.-]+)': '[^']+',$/gm)].map(([, action = '']) => action)
/** `action: 'key.revoke'`, `'member.remove'`: the first word is a kind of the page's list. */
const KINDS = [...new Set(NAMED.map((action) => action.split('.')[0] ?? ''))]
const ACTION = new RegExp(`['"\`]((?:${KINDS.join('|')})\\.[a-z]+(?:-[a-z]+)*)['"\`]`, 'g')
/** Texts of this form that are no actions. */
const OTHERS = new Set(['login.json', 'cache.store', 'account.from', 'file.write'])

/** Written as `account.${…}` or `user.${…}`. */
const TEMPLATES = ['account.enable', 'user.disable', 'user.enable']

void t.test('every action has words', (t) => {
  const folders = ['src/accounts', 'src/control', 'src/cli', 'src/process']
  const used = new Set(
    folders.flatMap((folder) =>
      filesBelow(folder, '.ts').flatMap(({ text }) =>
        [...text.matchAll(ACTION)].map(([, action = '']) => action),
      ),
    ),
  )
  t.ok(used.size > 40, `${used.size} actions`)
  const missing = [...used].filter((action) => !OTHERS.has(action) && !NAMED.includes(action))
  t.same(missing, [])
  const unused = NAMED.filter((action) => !used.has(action) && !TEMPLATES.includes(action))
  t.same(unused, [], 'and no other has')
  t.end()
})
