import React, { useState } from 'react';
import type { Plant } from './plants';
import { Button } from './button';

interface Props extends Named {
  plants: Plant[];
  onPick?: (plant: Plant) => void;
}

type Order = 'name' | 'age';

const TITLE = 'Plants';

/** One line of the list. */
const Row: React.FC<{ plant: Plant }> = ({ plant }) => (
  <li className="row">
    <Icons.Leaf size={2} />
    {plant.name}
  </li>
);

export function PlantList({ plants, onPick }: Props): JSX.Element {
  const [order, setOrder] = useState<Order>('name');

  const pick = (plant: Plant) => {
    onPick?.(plant);
  };

  return (
    <section title={TITLE}>
      <Button onClick={() => setOrder('age')}>Sort</Button>
      {sortBy(plants, order).map((plant) => (
        <Row key={plant.id} plant={plant} />
      ))}
    </section>
  );
}

export class Boundary extends React.Component<Props> {
  state = { failed: false };

  static getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  render() {
    return this.state.failed ? <Fallback /> : this.props.children;
  }
}

export default React.memo(PlantList);
