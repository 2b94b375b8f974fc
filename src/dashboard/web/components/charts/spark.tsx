/** A small line without axes that shows the trend of a figure. */

const WIDTH = 120
const HEIGHT = 28

/** Starts at zero; gaps stay gaps. */
export function Spark({ values }: { readonly values: readonly (number | null)[] }) {
  const top = Math.max(...values.map((value) => value ?? 0), Number.MIN_VALUE)
  const step = WIDTH / Math.max(values.length - 1, 1)
  let path = ''
  let pen = false
  values.forEach((value, index) => {
    if (value === null) {
      pen = false
      return
    }
    const y = HEIGHT - 1 - (value / top) * (HEIGHT - 3)
    path += `${pen ? 'L' : 'M'}${(index * step).toFixed(1)} ${y.toFixed(1)}`
    pen = true
  })
  return (
    <svg
      className="spark"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path d={path} vectorEffect="non-scaling-stroke" />
    </svg>
  )
}
