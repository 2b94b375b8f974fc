/**
 * Goal: the built page loads fast and needs no exception from a strict policy: at most 160 KB transferred at
 * first and 25 KB of a type face, charts and playground later, nothing inline, nothing from another host.
 * Method: the files of `npm run build` are measured and searched.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { packageFile } from '../../../src/config/package-file.js'

const FIRST_LOAD_BYTES = 160_000
const FONT_BYTES = 25_000
const FOLDER = packageFile('dist/dashboard/web')

if (!existsSync(FOLDER)) throw new Error(`${FOLDER} is missing: run npm run build first`)

const html = readFileSync(join(FOLDER, 'index.html'), 'utf8')
const assets = readdirSync(join(FOLDER, 'assets'))

function gzippedBytes(name: string): number {
  return gzipSync(readFileSync(join(FOLDER, 'assets', name))).length
}

void t.test('the first load is small', (t) => {
  // The overview draws charts at once.
  const first = assets.filter((name) => {
    const isFont = name.endsWith('.woff2')
    return (html.includes(`assets/${name}`) && !isFont) || name.startsWith('chart-canvas')
  })
  const bytes = first.reduce((sum, name) => sum + gzippedBytes(name), gzipSync(html).length)
  t.comment(
    `first load: ${String(Math.round(bytes / 1024))} KB of page, script and styles with the charts of the overview, gzipped`,
  )
  t.ok(bytes > 10_000, 'the page is measured')
  t.ok(bytes <= FIRST_LOAD_BYTES, `${String(bytes)} bytes`)
  const fonts = assets.filter((name) => name.endsWith('.woff2'))
  const fontBytes = fonts.reduce((sum, name) => sum + readFileSync(join(FOLDER, 'assets', name)).length, 0)
  t.ok(fonts.length === 1 && fontBytes <= FONT_BYTES, `${String(fontBytes)} bytes of one type face`)
  t.ok(
    fonts.every((name) => html.includes(`assets/${name}`)),
    'which loads with the page',
  )
  t.match(readFileSync(join(FOLDER, 'fonts/inter-licence.txt'), 'utf8'), 'SIL Open Font License')
  for (const part of ['chart-canvas', 'playground']) {
    const script = assets.find((name) => name.startsWith(part) && name.endsWith('.js'))
    t.ok(script !== undefined, `${part} is a file of its own`)
    t.notOk(html.includes(part), `${part} is not in the page`)
  }
  t.end()
})

void t.test('the page has nothing inline and nothing from other hosts', (t) => {
  t.notMatch(html, /<style|\sstyle=|\son\w+=|javascript:/i)
  t.notMatch(html, /<script(?![^>]*\ssrc=)/)
  const addresses = [...html.matchAll(/\s(?:src|href)="([^"]*)"/g)].map((match) => match[1])
  t.ok(addresses.length >= 3)
  t.strictSame(
    addresses.filter((address) => address?.startsWith('/dashboard/') !== true),
    [],
  )
  for (const name of assets.filter((name) => name.endsWith('.css'))) {
    const foreign = /@import|url\((?!\/dashboard\/assets\/inter-latin-[\w-]{8}\.woff2\))/
    t.notMatch(readFileSync(join(FOLDER, 'assets', name), 'utf8'), foreign, name)
  }
  t.end()
})

void t.test('the name of a file changes with its content', (t) => {
  t.ok(assets.every((name) => /-[\w-]{8}\.(?:js|css|woff2)$/.test(name)))
  t.end()
})
