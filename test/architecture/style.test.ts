/**
 * Goal: the rules of style that ESLint does not check: names of folders, no default exports, a doc comment on
 * every export.
 * Method: reads every file; a file that breaks each rule is reported.
 */
import t from 'tap'
import { filesBelow, type Source } from './source-tree.js'

/** Names without a subject, which attract unrelated files. */
const NO_FOLDERS = ['utils', 'helpers', 'common', 'lib', 'core', 'types', 'services']

const DECLARES =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type) (\w+)/

function breaches({ path, text }: Source): string[] {
  const found: string[] = []
  const lines = text.replace(/\n$/, '').split('\n')
  const folders = path.split('/').slice(0, -1)
  for (const folder of folders.filter((name) => NO_FOLDERS.includes(name))) {
    found.push(`${path}: a folder named ${folder}`)
  }
  if (/[A-Z_]/.test(path)) found.push(`${path}: not kebab-case`)
  if (!text.startsWith('/**') && !text.startsWith('#!'))
    found.push(`${path}: has no header comment`)
  const documented = new Set<string>()
  lines.forEach((line, index) => {
    const where = `${path}:${String(index + 1)}`
    if (/^export default\b|\bas default\b/.test(line)) found.push(`${where}: a default export`)
    const name = DECLARES.exec(line)?.[1]
    if (name === undefined) return
    // One comment documents all signatures of an overload.
    if (lines[index - 1]?.endsWith('*/') === true) documented.add(name)
    if (!documented.has(name)) found.push(`${where}: ${name} has no doc comment`)
  })
  return found
}

void t.test('every source file keeps the rules of style', (t) => {
  const sources = ['.ts', '.tsx'].flatMap((extension) => filesBelow('src', extension))
  t.ok(sources.length > 100, 'the tree is read')
  t.strictSame(sources.flatMap(breaches), [])
  t.end()
})

void t.test('a breach of each rule is found', (t) => {
  const head = '/** The purpose. */\n'
  const found = (text: string, path = 'chat/x.ts'): string =>
    breaches({ path, text: head + text }).join('\n')
  t.match(found('', 'chat/utils/x.ts'), /a folder named utils/)
  t.match(found('', 'chat/someThing.ts'), /kebab-case/)
  t.match(found('export default 1'), /:2: a default export/)
  t.match(found('export { x as default }'), /a default export/)
  t.match(found('\nexport const x = 1'), /:3: x has no doc comment/)
  t.match(found('\nexport async function f() {}'), /f has no doc comment/)
  t.match(found('\nexport interface I {}'), /I has no doc comment/)
  t.match(found('\nexport type T = 1'), /T has no doc comment/)
  t.match(found('\nexport class C {}'), /C has no doc comment/)
  t.equal(found('/** Text. */\nexport const x = 1'), '')
  t.equal(found('/** Text. */\nexport function f(a: 1): 1\nexport function f(a: 2): 2'), '')
  t.match(breaches({ path: 'chat/x.ts', text: 'const x = 1' }).join(), /has no header comment/)
  t.end()
})
