import { memo } from "react";

interface Props {
  readonly rates: readonly number[];
  readonly label: string;
}

const height = 32;

/** Tokens per second as an area. The highest value fills the height. */
export const RateChart = memo(function RateChart({ rates, label }: Props) {
  const highest = Math.max(1, ...rates);
  const y = (rate: number) => (height - 1 - (rate / highest) * (height - 3)).toFixed(1);
  const line = rates.map((rate, index) => `${index === 0 ? "M" : "L"}${index} ${y(rate)}`).join("");
  const width = Math.max(1, rates.length - 1);
  return (
    <svg
      className="rates"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
      data-testid="rates"
    >
      <path className="rates-area" d={`${line}L${width} ${height}L0 ${height}Z`} />
      <path className="rates-line" d={line} vectorEffect="non-scaling-stroke" />
    </svg>
  );
});
