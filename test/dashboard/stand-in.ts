/**
 * A page whose server is played by the test: the built files, and replies that the test chooses.
 * Judges nothing.
 */
import { existsSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { Page, Route } from 'playwright-core'
import { packageFile } from '../../src/files/package-file.js'

/** Where the page believes to be. */
export const ORIGIN = 'http://127.0.0.1:8080'

const FOLDER = packageFile('dist/dashboard/web')
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}
/** As strict as the server's. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** What a call is answered with. */
export interface Answer {
  readonly status?: number
  readonly body: unknown
}

/** Answers a call: its method, its path below the API and its query. */
export type Api = (method: string, path: string, query: URLSearchParams) => Answer | Promise<Answer>

/** Serves the built page and answers its calls. */
export async function standIn(page: Page, api: Api): Promise<void> {
  await page.route(`${ORIGIN}/**`, async (route) => {
    const url = new URL(route.request().url())
    const path = url.pathname.slice('/dashboard'.length)
    if (!path.startsWith('/api/')) return file(route, path)
    const answer = await api(route.request().method(), path.slice('/api'.length), url.searchParams)
    return route.fulfill({
      status: answer.status ?? 200,
      contentType: 'application/json',
      headers: { 'x-request-id': 'req_of_the_test' },
      body: JSON.stringify(answer.body),
    })
  })
}

function file(route: Route, path: string): Promise<void> {
  const isFile = extname(path) !== '' && existsSync(join(FOLDER, path))
  const name = isFile ? path : 'index.html'
  return route.fulfill({
    contentType: TYPES[extname(name)] ?? 'application/octet-stream',
    headers: { 'content-security-policy': POLICY },
    body: readFileSync(join(FOLDER, name)),
  })
}
