/**
 * Goal: the rules of style that ESLint does not check: names of folders, no default exports, a doc comment on
 * each function and class that another room of `src` imports, and no export that only its own file uses.
 * Method: reads every file; a file that breaks each rule is reported.
 */
import t from 'tap'
import { filesBelow, importsOf, type Source } from './source-tree.js'

/** Names without a subject, which attract unrelated files. */
const NO_FOLDERS = ['utils', 'helpers', 'common', 'lib', 'core', 'types', 'services']

const DECLARES = /^export (?:abstract )?(?:async )?(?:function\*?|class) (\w+)/

function roomOf(path: string): string {
  return path.split('/')[0] ?? ''
}

/** The names that each file exports to other rooms, from the imports of those. */
function crossings(sources: readonly Source[]): Set<string> {
  const found = new Set<string>()
  for (const source of sources) {
    for (const { target, isPackage, names } of importsOf(source)) {
      if (isPackage || roomOf(target) === roomOf(source.path)) continue
      for (const name of names) found.add(`${target} ${name}`)
    }
  }
  return found
}

/** `crossing`: `path name` of each import from another room. */
function breaches({ path, text }: Source, crossing: ReadonlySet<string>): string[] {
  const found: string[] = []
  const lines = text.replace(/\n$/, '').split('\n')
  const folders = path.split('/').slice(0, -1)
  for (const folder of folders.filter((name) => NO_FOLDERS.includes(name))) {
    found.push(`${path}: a folder named ${folder}`)
  }
  if (/[A-Z_]/.test(path)) found.push(`${path}: not kebab-case`)
  if (!text.startsWith('/**') && !text.startsWith('#!')) found.push(`${path}: has no header comment`)
  const documented = new Set<string>()
  lines.forEach((line, index) => {
    const where = `${path}:${String(index + 1)}`
    if (/^export default\b|\bas default\b/.test(line)) found.push(`${where}: a default export`)
    const name = DECLARES.exec(line)?.[1]
    if (name === undefined) return
    // One comment documents all signatures of an overload.
    if (lines[index - 1]?.endsWith('*/') === true) documented.add(name)
    if (!documented.has(name) && crossing.has(`${path} ${name}`))
      found.push(`${where}: ${name} has no doc comment`)
  })
  return found
}

void t.test('every source file keeps the rules of style', (t) => {
  const sources = ['.ts', '.tsx'].flatMap((extension) => filesBelow('src', extension))
  t.ok(sources.length > 100, 'the tree is read')
  const crossing = crossings(sources)
  t.ok(crossing.size > 100, 'imports from other rooms are found')
  t.strictSame(
    sources.flatMap((source) => breaches(source, crossing)),
    [],
  )
  t.end()
})

/** Files that a comment names and that do not exist, and files that name themselves. */
function wrongFileNames(sources: readonly Source[]): string[] {
  const paths = sources.map(({ path }) => path)
  return sources.flatMap(({ path, text }) => {
    const comments = [...text.matchAll(/\/\*\*[^]*?\*\/|\/\/ [^\n]*/g)].map(([comment]) => comment)
    return comments.flatMap((comment) =>
      [...comment.matchAll(/[\w./-]+\.tsx?\b/g)].flatMap(([name]) => {
        const named = paths.filter((other) => `/${other}`.endsWith(`/${name}`))
        if (named.length === 0) return [`${path}: a comment names ${name}, which does not exist`]
        return named.length === 1 && named[0] === path ? [`${path}: a comment names its own file`] : []
      }),
    )
  })
}

void t.test('comments name files that exist, and not their own', (t) => {
  const sources = ['src', 'test', 'docs', 'bench'].flatMap((folder) =>
    ['.ts', '.tsx'].flatMap((extension) =>
      filesBelow(folder, extension).map(({ path, text }) => ({ path: `${folder}/${path}`, text })),
    ),
  )
  const inside = sources.filter(({ path }) => path.startsWith('src/'))
  const known = new Set(inside.map(({ path }) => path))
  t.strictSame(
    wrongFileNames(sources).filter((breach) => known.has(breach.slice(0, breach.indexOf(':')))),
    [],
  )
  const one = (text: string): Source[] => [
    { path: 'src/a/x.ts', text },
    { path: 'src/b/x.ts', text: '' },
    { path: 'src/y.ts', text: '' },
  ]
  t.strictSame(wrongFileNames(one('/** As `y.ts`; see `b/x.ts`. */')), [])
  t.match(wrongFileNames(one('// As z.ts.')), [/names z\.ts, which does not exist/])
  t.match(wrongFileNames(one('// See `src/a/x.ts`.')), [/names its own file/])
  t.end()
})

const READERS = ['src', 'test', 'bench', 'docs', 'grafana']
/** Their exports are the interface of the package. */
const PUBLIC = ['src/policy/plugin-interface', 'src/formats/codecs']
const EXPORTS = /^export (?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type) (\w+)/gm

function withoutExtension(path: string): string {
  return path.replace(/\.tsx?$/, '')
}

/** Exports of files in `src/` that no other file of `sources` imports. */
function unusedExports(sources: readonly Source[]): string[] {
  const used = new Set<string>()
  for (const source of sources) {
    for (const { target, isPackage, names } of importsOf(source)) {
      if (isPackage) continue
      // A dynamic import, or one of the whole file, names nothing.
      for (const name of names.length === 0 ? ['*'] : names) {
        used.add(`${withoutExtension(target)} ${name}`)
      }
    }
  }
  return sources.flatMap(({ path, text }) => {
    const file = withoutExtension(path)
    if (!path.startsWith('src/') || PUBLIC.includes(file) || used.has(`${file} *`)) return []
    return [...text.matchAll(EXPORTS)].flatMap(([, name = '']) =>
      used.has(`${file} ${name}`) ? [] : [`${path}: ${name}`],
    )
  })
}

void t.test('every export has a reader', (t) => {
  const sources = READERS.flatMap((folder) =>
    ['.ts', '.tsx'].flatMap((extension) =>
      filesBelow(folder, extension).map(({ path, text }) => ({ path: `${folder}/${path}`, text })),
    ),
  )
  t.strictSame(unusedExports(sources), [])
  const one = (text: string): Source[] => [
    { path: 'src/x.ts', text: 'export const a = 1\nexport interface B {}\n' },
    { path: 'test/y.ts', text },
  ]
  t.strictSame(unusedExports(one("import { a } from '../src/x.js'")), ['src/x.ts: B'])
  t.strictSame(unusedExports(one("await import('../src/x.js')")), [])
  t.end()
})

void t.test('a breach of each rule is found', (t) => {
  const head = '/** The purpose. */\n'
  const crossing = crossings([
    { path: 'store/y.ts', text: "import { C, f, type I } from '../chat/x.js'" },
    { path: 'chat/z.ts', text: "import { near } from './x.js'" },
  ])
  const found = (text: string, path = 'chat/x.ts'): string =>
    breaches({ path, text: head + text }, crossing).join('\n')
  t.match(found('', 'chat/utils/x.ts'), /a folder named utils/)
  t.match(found('', 'chat/someThing.ts'), /kebab-case/)
  t.match(found('export default 1'), /:2: a default export/)
  t.match(found('export { x as default }'), /a default export/)
  t.match(found('\nexport async function f() {}'), /:3: f has no doc comment/)
  t.match(found('\nexport class C {}'), /C has no doc comment/)
  t.equal(found('\nexport interface I {}'), '', 'a type may say it by its name')
  t.equal(found('\nexport function near() {}'), '', 'so may what one room uses')
  t.equal(found('/** Text. */\nexport class C {}'), '')
  t.equal(found('/** Text. */\nexport function f(a: 1): 1\nexport function f(a: 2): 2'), '')
  t.match(breaches({ path: 'chat/x.ts', text: 'const x = 1' }, crossing).join(), /has no header comment/)
  t.end()
})
