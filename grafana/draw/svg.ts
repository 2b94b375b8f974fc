/** Elements of SVG as text. Every text is escaped. */

/** A rectangle in pixels. */
export interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${escaped(typeof value === 'number' ? fixed(value) : value)}"`)
    .join('')
}

/** A coordinate with at most one decimal. */
export function fixed(value: number): string {
  return String(Math.round(value * 10) / 10)
}

export function element(
  name: 'rect' | 'line' | 'path',
  values: Readonly<Record<string, string | number>>,
): string {
  return `<${name}${attributes(values)}/>`
}

export function text(content: string, values: Readonly<Record<string, string | number>>): string {
  return `<text${attributes(values)}>${escaped(content)}</text>`
}

/** A path through points. */
export function pathOf(points: readonly (readonly [number, number])[]): string {
  return points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${fixed(x)} ${fixed(y)}`).join('')
}

/** A text cut to a width, for a font of 11 pixels. */
export function cut(content: string, width: number): string {
  const most = Math.max(3, Math.floor(width / 5.9))
  return content.length <= most ? content : `${content.slice(0, most - 1)}…`
}
