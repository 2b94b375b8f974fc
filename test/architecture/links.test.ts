/**
 * Goal: every link and file name in the documentation exists, and every decision is in the list.
 * Method: looks up the relative links of every page, and the pages and source files that pages and comments
 * name.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import t from 'tap'
import { filesBelow } from './source-tree.js'

const pages = [
  ...readdirSync('.').filter((name) => name.endsWith('.md')),
  ...['docs', 'bench', 'grafana', 'test'].flatMap((folder) =>
    existsSync(folder) ? filesBelow(folder, '.md').map(({ path }) => join(folder, path)) : [],
  ),
]

/** Targets of relative links. */
function relativeLinks(text: string): string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => match[1] ?? '')
    .filter((target) => !/^[a-z]+:/.test(target))
}

/** The anchors of a page's headings, as GitHub creates them. */
function anchors(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map((match) =>
    (match[1] ?? '')
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

function brokenLinks(page: string, text: string): string[] {
  return relativeLinks(text).filter((target) => {
    const [path = '', anchor] = target.split('#')
    const file = path === '' ? page : join(dirname(page), path)
    if (!existsSync(file)) return true
    return anchor !== undefined && !anchors(readFileSync(file, 'utf8')).includes(anchor)
  })
}

/**
 * Files that a page names in backquotes, from the root, from `src` or from its own folder; and folders from
 * the root.
 */
function missingFiles(text: string, folder: string): string[] {
  const files = [...text.matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.(?:ts|md|yaml|json))`/g)]
    .map((match) => match[1] ?? '')
    .filter((path) => !['', 'src', folder].some((folder) => existsSync(join(folder, path))))
  const folders = [...text.matchAll(/`((?:src|test|bench|docs|grafana|deploy)(?:\/[\w-]+)+)\/?`/g)]
    .map((match) => match[1] ?? '')
    .filter((path) => !path.split('/').includes('NAME') && !existsSync(path))
  return [...files, ...folders]
}

for (const page of pages) {
  void t.test(`${page} names only existing files`, (t) => {
    const text = readFileSync(page, 'utf8')
    t.strictSame(brokenLinks(page, text), [], 'links')
    t.strictSame(missingFiles(text, dirname(page)), [], 'files')
    t.notMatch(text, /^[\s>\\]*(?:[<>] ?){7}|^\s*\\?={7}$/m, 'no mark of a merge')
    t.end()
  })
}

void t.test('the comments of the code name only existing pages', (t) => {
  const names = new Set(pages.map((page) => basename(page)))
  // `sluice import` writes it.
  names.add('report.md')
  const lost = ['src', 'test'].flatMap((folder) =>
    filesBelow(folder, '.ts')
      .filter(({ path }) => path !== 'architecture/links.test.ts')
      .flatMap(({ path, text }) =>
        [...text.matchAll(/[\w/-]+\.md\b/g)]
          .map(([name]) => name)
          .filter((name) => !names.has(basename(name)))
          .map((name) => `${folder}/${path}: ${name}`),
      ),
  )
  t.strictSame(lost, [])
  t.end()
})

/** Every decision page below `docs/decisions`, such as `gateway/0046-undici.md`. */
const decisions = filesBelow('docs/decisions', '.md')
  .map(({ path }) => path)
  .filter((path) => path !== 'README.md')

void t.test('the list of decisions has every page, and each has a number of its own', (t) => {
  const list = relativeLinks(readFileSync('docs/decisions/README.md', 'utf8'))
  t.strictSame(list.toSorted(), decisions.toSorted())
  const numbers = decisions.map((path) => basename(path).slice(0, 4))
  t.equal(new Set(numbers).size, decisions.length)
  t.end()
})

void t.test('every decision that a comment cites by its number exists', (t) => {
  const numbers = new Set(decisions.map((path) => basename(path).slice(0, 4)))
  const cited = ['src', 'test', 'bench', 'grafana', 'examples'].flatMap((folder) =>
    filesBelow(folder, '.ts').flatMap(({ path, text }) =>
      [...text.matchAll(/decisions?[ /](\d{4})\b/g)].map((match) => ({
        path,
        number: match[1] ?? '',
      })),
    ),
  )
  t.ok(cited.length > 5, 'comments cite decisions')
  t.strictSame(
    cited.filter(({ number }) => !numbers.has(number)),
    [],
  )
  t.end()
})

void t.test('a broken link is found', (t) => {
  const page = 'docs/x.md'
  t.strictSame(brokenLinks(page, 'see [a](no-such-page.md)'), ['no-such-page.md'])
  t.strictSame(brokenLinks(page, 'see [a](../README.md#no-such-heading)').length, 1)
  t.strictSame(brokenLinks(page, 'see [a](../README.md#comparison), [b](https://example.com)'), [])
  t.strictSame(missingFiles('in `gateway/no-such.ts` and `gateway/phases/relay.ts`', 'docs'), [
    'gateway/no-such.ts',
  ])
  t.strictSame(missingFiles('in `src/no-such` and `src/gateway/`', 'docs'), ['src/no-such'])
  t.end()
})
