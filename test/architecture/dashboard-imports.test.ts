/**
 * Goal: the dashboard's web page is a separate program that imports from the server only its schemas, as
 * types.
 * Method: the import lines of its files are compared with the tables; a line that breaks each rule is
 * reported.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { isObject, objectOf } from '../../src/base/json.js'
import { cycles, filesBelow, importsOf, type Source } from './source-tree.js'

const ROOT = 'src/dashboard/web'

/** A folder imports values only from folders above it. */
const ROWS: readonly (readonly string[])[] = [
  ['format', 'listeners', 'routing'],
  ['api'],
  ['components', 'shell'],
  ['pages'],
  ['app', 'main'],
]

/** Packages of the page; all are bundled, none is needed when the gateway runs. */
const PACKAGES: Readonly<Record<string, RegExp>> = {
  react: /^/,
  'react-dom/client': /^main\.tsx$/,
  '@base-ui/react': /^(?:components|shell)\/|^main\.tsx$/,
  '@tanstack/react-query': /^/,
  '@tanstack/react-table': /^components\/data-table\.tsx$/,
  'react-markdown': /^pages\/playground\/markdown\.tsx$/,
  'remark-gfm': /^pages\/playground\/markdown\.tsx$/,
  uplot: /^components\/chart-canvas\.tsx$/,
}

function rowOf(path: string): number {
  const module = path.split('/')[0]?.replace(/\.tsx?$/, '') ?? path
  return ROWS.findIndex((row) => row.includes(module))
}

function packageOf(target: string): string {
  return target in PACKAGES
    ? target
    : target
        .split('/')
        .slice(0, target.startsWith('@') ? 2 : 1)
        .join('/')
}

function breaches(source: Source): string[] {
  return importsOf(source).flatMap(({ target, isPackage, isType, line }) => {
    const why = breach(source.path, target, { isPackage, isType })
    return why === undefined ? [] : [`${source.path}:${String(line)} imports ${target}: ${why}`]
  })
}

function breach(
  from: string,
  target: string,
  { isPackage, isType }: { isPackage: boolean; isType: boolean },
): string | undefined {
  if (isPackage) {
    if (target.endsWith('.css')) return undefined
    const place = PACKAGES[packageOf(target)]
    if (place === undefined) return 'this package has no place in the table'
    return place.test(from) ? undefined : 'this file may not import this package'
  }
  if (target.startsWith('..')) {
    if (target !== '../../control/dashboard/schema/schema.ts')
      return 'the page imports only the schemas of the server'
    return isType ? undefined : 'the browser would load the schema library: import a type'
  }
  if (target.endsWith('.css')) {
    // A page that is loaded on demand may bring its own styles.
    const isOwn = from.startsWith('pages/') && dirname(from) === dirname(target)
    return from === 'main.tsx' || isOwn ? undefined : 'styles come with main.tsx'
  }
  if (isType) return undefined
  return rowOf(target) > rowOf(from) ? 'the arrow points up' : undefined
}

const sources = ['.ts', '.tsx'].flatMap((extension) => filesBelow(ROOT, extension))

void t.test('every import of the page follows the tables', (t) => {
  t.ok(sources.length > 40, 'the tree is read')
  t.strictSame(sources.flatMap(breaches), [])
  t.strictSame(cycles(sources), [], 'no circle of files')
  const lost = sources
    .flatMap((source) => importsOf(source))
    .filter(({ isPackage, target }) => !isPackage && !target.startsWith('..'))
    .filter(({ target }) => ![target, `${target}x`].some((path) => existsSync(join(ROOT, path))))
  t.strictSame(lost, [], 'every import names a file')
  t.end()
})

void t.test('every package of the page is used and is a development dependency', (t) => {
  const used = new Set(sources.flatMap(importsOf).map(({ target }) => packageOf(target)))
  const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'))
  const building = isObject(manifest) ? objectOf(manifest['devDependencies']) : {}
  for (const name of Object.keys(PACKAGES)) {
    t.ok(used.has(name), `${name} is used`)
    t.ok(name.replace('/client', '') in building, `${name} is a development dependency`)
  }
  t.end()
})

void t.test('a breach of each rule is found', (t) => {
  const found = (path: string, text: string): string => breaches({ path, text }).join()
  t.match(found('pages/a.tsx', "import UPlot from 'uplot'"), /may not import/)
  t.match(found('components/a.tsx', "import 'left-pad'"), /no place/)
  t.match(
    found('api/a.ts', "import { key } from '../../../control/dashboard/schema/schema.js'"),
    /import a type/,
  )
  t.match(found('api/a.ts', "import type { X } from '../../session.js'"), /only the schemas/)
  t.match(found('components/a.tsx', "import { X } from '../pages/b.js'"), /points up/)
  t.match(found('components/a.tsx', "import './a.css'"), /main\.tsx/)
  t.equal(found('api/a.ts', "import type { Key } from '../../../control/dashboard/schema/schema.js'"), '')
  t.end()
})
