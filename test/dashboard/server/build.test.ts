/**
 * Goal: the built page loads fast and needs no exception from a strict policy: at most 160 KB transferred at
 * first, charts and playground later, nothing inline, nothing from another host.
 * Method: the files of `npm run build` are measured and searched.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { packageFile } from '../../../src/config/package-file.js'

const FIRST_LOAD_BYTES = 160_000
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
    return html.includes(`assets/${name}`) || name.startsWith('chart-canvas')
  })
  const bytes = first.reduce((sum, name) => sum + gzippedBytes(name), gzipSync(html).length)
  t.comment(
    `first load: ${String(Math.round(bytes / 1024))} KB of page, script and styles with the charts of the overview, gzipped`,
  )
  t.ok(bytes > 10_000, 'the page is measured')
  t.ok(bytes <= FIRST_LOAD_BYTES, `${String(bytes)} bytes`)
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
    t.notMatch(readFileSync(join(FOLDER, 'assets', name), 'utf8'), /@import|url\(/, name)
  }
  t.end()
})

void t.test('the name of a file changes with its content', (t) => {
  t.ok(assets.every((name) => /-[\w-]{8}\.(?:js|css)$/.test(name)))
  t.end()
})
